// The timeline in the HTML of an output; Python writes the constant MARK before it.

import { showPage } from "../figures/widgets/chart/connection.js";
import { TimelineView } from "./timeline.js";

showPage(TimelineView, MARK);
