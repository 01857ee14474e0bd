// The roofline explorer as an anywidget: it connects the explorer of an output with the kernel.

import { rendering } from "../chart/connection.js";
import { RooflineExplorer } from "./explorer.js";

export default { render: rendering(RooflineExplorer) };
