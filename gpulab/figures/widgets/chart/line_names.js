// Names at the right ends of lines, moved apart where they would overlap.

const LINE_PX = 18,
  AWAY_PX = 54,
  LETTER_PX = 7.9; // a wide one of these bold names

// A curve is { key, role, name, style }; `pixels` has the places of its points.
export function lineNames(plane, curves, pixels) {
  const { right, left, width } = plane;
  const ends = curves
    .map((curve, index) => {
      const inside = pixels[index].filter(([x, y]) => x >= left && plane.holds(x, y)).at(-1);
      if (!inside) return null;
      // A line that ends inside of the picture has its name above its end, where no other line goes on.
      const [isInside, [x, y]] = [inside[0] < right - AWAY_PX, inside];
      if (isInside) return { curve, x, y: y - 14, end: " middle" };
      // A name without room beside its line ends at the edge, above the line.
      return x + 11 + LETTER_PX * curve.name.length < width
        ? { curve, x: x + 11, y: y + 4, end: "" }
        : { curve, x: width - 2, y: y - 10, end: " end" };
    })
    .filter(Boolean)
    .sort((one, other) => one.y - other.y);
  ends.forEach((end, index) => {
    const above = ends.slice(0, index).filter(other => Math.abs(other.x - end.x) < AWAY_PX);
    end.y = Math.max(end.y, ...above.map(other => other.y + LINE_PX));
  });
  return ends.map(({ curve, x, y, end }) => ({
    key: `name ${curve.key}`,
    tag: "text",
    class: `line-name ${curve.role}${end}`,
    style: curve.style ?? "",
    x,
    y,
    text: curve.name,
  }));
}
