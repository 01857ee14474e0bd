// A picture that grows, as an anywidget.

import { Live } from "./live.js";

export default {
  render({ model, el }) {
    const live = new Live(el, model.get("view"));
    const hear = () => live.show(model.get("view"));
    model.on("change:view", hear);
    return () => {
      model.off("change:view", hear);
      live.close();
    };
  },
};
