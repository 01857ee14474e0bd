// A drawn guess in the HTML of an output, for a page without a kernel. Python writes the constant MARK,
// which is the class of the output, too: a widget that is alive hides it.

import { showPage } from "../chart/connection.js";
import { Sketch } from "./sketch.js";

if (getComputedStyle(document.querySelector(`.${MARK}`)).display !== "none") showPage(Sketch, MARK);
