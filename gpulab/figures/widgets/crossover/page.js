// The crossover explorer in the HTML of an output; Python writes the constant MARK before it.

import { showPage } from "../chart/connection.js";
import { CrossoverExplorer } from "./explorer.js";

showPage(CrossoverExplorer, MARK);
