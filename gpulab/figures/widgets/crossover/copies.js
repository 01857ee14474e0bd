// How much longer the copies make a call: the arithmetic of copies_s in gpulab/roofline/scaling/_links.py.

// `payload` has the bytes of each input and of each result; `rate` is the link's, in bytes per second.
export function copiesTime([going, coming], transfers, rate, { reached, first_byte_s, launch_s }) {
  const copy = bytes => first_byte_s + bytes / (reached * rate);
  let host = 0,
    link = 0;
  const send = bytes => {
    host += launch_s;
    link = Math.max(link, host) + copy(bytes); // the host launches the next copy while the link is busy
  };
  if (transfers !== "out") going.forEach(send);
  host += launch_s; // the launch of the work, which the time without transfers includes
  link = Math.max(link, host);
  if (transfers !== "in") coming.forEach(send);
  return link - launch_s;
}
