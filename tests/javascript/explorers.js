// What the pages of the explorers say of some states; tests/views/explorers/test_page.py compares it with what
// Python says. Python writes the constant GIVEN before it.

import { codeOf } from "../../gpulab/figures/widgets/chart/share.js";
import { bytesText, rateText, ratioText, timeText } from "../../gpulab/figures/widgets/chart/quantities.js";
import { fits, lacksNumbers, view } from "../../gpulab/figures/widgets/crossover/curves.js";
import { headline, beside } from "../../gpulab/figures/widgets/roofline/words.js";
import { pointsOf } from "../../gpulab/figures/widgets/roofline/points.js";

const SAY = {
  crossover: (data, state) => {
    const shown = view(data, state), { crossing, bareCrossing } = shown;
    const lines = Object.fromEntries(fits(data, shown).lines.map(({ of, fit }) => [of, fit]));
    return { crossing, bare: bareCrossing, lines, lacks: lacksNumbers(data, state), code: codeOf(data, state) };
  },
  roofline: (data, state) => {
    const points = pointsOf(data, state, state.gpu),
      others = state.beside ? pointsOf(data, state, state.beside) : [];
    return {
      n: points.length,
      title: headline(data, points, state),
      beside: others.length ? beside(data, { points, second: { points: others }, state }) : "",
      code: codeOf(data, state),
    };
  },
  texts: (_, [times, amounts, ratios]) => [
    times.map(timeText),
    amounts.map(amount => [bytesText(amount), rateText(amount, "B")]),
    ratios.map(ratioText),
  ],
};

console.log(JSON.stringify(GIVEN.states.map(state => SAY[GIVEN.kind](GIVEN.data, state))));
