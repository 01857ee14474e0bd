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
    const lost = () => sketch.disconnect();
    model.on("comm_live_update", lost); // the kernel has gone
    return () => {
      model.off("change:view", hear);
      model.off("comm_live_update", lost);
      sketch.close();
    };
  },
};
