// How long a page waits for its kernel before it says that no answer has come.

const PATIENCE_MS = 5000;
const SILENCE = "No answer from the kernel yet: a cell may be running, or the kernel has ended.";

export class Patience {
  constructor(say) {
    this.say = say;
  }

  begin() {
    this.end();
    this.waiting = setTimeout(() => this.say(SILENCE), PATIENCE_MS);
  }

  end() {
    clearTimeout(this.waiting);
  }
}
