// Where an explorer meets its kernel. The HTML of an output shows the explorer with its numbers, also
// without a kernel. The widget in the next output brings the connection. Either may come first.

const PATIENCE_MS = 1500;
const known = (globalThis.gpulabExplorers ??= { explorers: [], models: new Map() });

// Shows the explorer in the elements of this mark, with the numbers that they contain.
export function showPage(Explorer, mark) {
  for (const host of document.querySelectorAll(`[data-gpulab-page="${mark}"]`)) {
    const numbers = host.querySelector("script");
    if (!numbers) continue; // it is shown already
    const explorer = new Explorer(host, JSON.parse(numbers.textContent));
    known.explorers = known.explorers.filter(({ root }) => root.isConnected);
    known.explorers.push(Object.assign(explorer, { mark }));
    if (known.models.has(mark)) explorer.connect(known.models.get(mark));
  }
}

// Returns the function that anywidget calls to render. If no element has the widget's mark, as in a
// layout of the reader, the widget asks for the numbers and shows the explorer itself.
export function rendering(Explorer) {
  return ({ model, el }) => {
    const { mark } = model.get("view"),
      mine = () => known.explorers.filter(explorer => explorer.mark === mark);
    let own = null;
    const receive = message => {
      if (message.numbers && !own && !mine().length) {
        own = new Explorer(el, message.numbers);
        own.connect(model);
      }
      for (const explorer of own ? [own] : mine()) explorer.receive(message);
    };
    const lose = () => {
      for (const explorer of own ? [own] : mine()) explorer.disconnect();
    };
    model.on("msg:custom", receive);
    model.on("comm_live_update", lose); // the kernel has gone
    known.models.set(mark, model);
    for (const explorer of mine()) explorer.connect(model);
    const waiting = setTimeout(
      () => mine().length || model.send({ do: "numbers" }),
      mark ? PATIENCE_MS : 0,
    );
    return () => {
      clearTimeout(waiting);
      model.off("msg:custom", receive);
      model.off("comm_live_update", lose);
      if (known.models.get(mark) === model) known.models.delete(mark);
      lose();
      own?.close();
    };
  };
}
