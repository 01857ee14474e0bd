// The roofline explorer in the HTML of an output; Python writes the constant MARK before it.

import { showPage } from "../chart/connection.js";
import { RooflineExplorer } from "./explorer.js";

showPage(RooflineExplorer, MARK);
