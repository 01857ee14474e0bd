// Names at the right ends of lines, moved apart where they would overlap.

const LINE_PX = 18,
  AWAY_PX = 54;

// A curve is { key, role, name, style }; `pixels` has the places of its points.
export function lineNames(plane, curves, pixels) {
  const { right, left } = plane;
  const ends = curves
    .map((curve, index) => {
      const inside = pixels[index].filter(([x, y]) => x >= left && plane.holds(x, y)).at(-1);
      if (!inside) return null;
      // A line that ends inside of the picture has its name above its end, where no other line goes on.
      const [isInside, [x, y]] = [inside[0] < right - AWAY_PX, inside];
      return isInside ? { curve, x, y: y - 14, end: " middle" } : { curve, x: x + 11, y: y + 4, end: "" };
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
