// A drawn guess as an anywidget. While it is alive, the page for readers without a kernel is hidden.

import { tag } from "../shared.js";
import { Sketch } from "./sketch.js";

export default {
  render({ model, el }) {
    const view = () => model.get("view");
    const sketch = new Sketch(el, view());
    const hear = () => sketch.receive(view());
    el.append(tag("style", {}, `.${view().still} { display: none; }`));
    sketch.connect(model);
    model.on("change:view", hear);
    return () => {
      model.off("change:view", hear);
      sketch.close();
    };
  },
};
