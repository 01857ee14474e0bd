// The crossover explorer as an anywidget: it connects the explorer of an output with the kernel.

import { rendering } from "../chart/connection.js";
import { CrossoverExplorer } from "./explorer.js";

export default { render: rendering(CrossoverExplorer) };
