// The legend, which filters: a button for each family, and below it one for each of its operations.

import { drawn, tag } from "../shared.js";
import { SIGNS, className } from "./families.js";

export class Legend {
  constructor(families, chosen, changed) {
    Object.assign(this, { changed, buttons: [] });
    const all = families.flatMap(([, members]) => members);
    this.root = tag(
      "div",
      { class: "legend", role: "group", "aria-label": "Operations" },
      this.button(["all operations"], all, "member"),
      ...families.map(([family, members]) =>
        tag(
          "div",
          { class: className(family) },
          this.button([sign(family), family], members, "family"),
          tag("div", {}, ...members.map(member => this.button([member], [member], "member"))),
        ),
      ),
    );
    this.show(new Set(chosen));
  }

  button(content, members, kind) {
    const button = tag("button", { type: "button", class: kind }, ...content);
    button.addEventListener("click", () => this.turn(members));
    this.buttons.push([button, members]);
    return button;
  }

  // A family is switched off only if all of its operations are on.
  turn(members) {
    const chosen = new Set(this.chosen),
      areOn = members.every(member => chosen.has(member));
    for (const member of members)
      if (areOn) chosen.delete(member);
      else chosen.add(member);
    this.show(chosen);
    this.changed(chosen, members, !areOn);
  }

  show(chosen, offered = null) {
    this.chosen = chosen;
    for (const [button, members] of this.buttons) {
      const on = members.filter(member => chosen.has(member)).length;
      button.setAttribute("aria-pressed", on === members.length ? "true" : on ? "mixed" : "false");
      button.disabled = offered !== null && !members.some(member => offered.has(member));
    }
  }
}

function sign(family) {
  return drawn(
    "svg",
    { class: "sign", viewBox: "-9 -9 18 18", "aria-hidden": "true" },
    drawn("path", { d: SIGNS[family] }),
  );
}
