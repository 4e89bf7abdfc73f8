// Laplace noise in JavaScript as a subject of dpaudit: the protocol of docs/exec-protocol.md in 40 lines.
//
//     dpaudit audit "exec:node docs/examples/exec/laplace.js" --claim eps=1 --pairs 0,1
//
// An argument is the scale of the noise (1 by default), which gives too little noise below 1.
"use strict";
const readline = require("node:readline");

const scale = Number(process.argv[2] ?? 1);

// A generator that a seed decides: mulberry32, run twice for the 52 bits of a uniform between 0 and 1.
function generator(seed) {
  let state = (seed ^ (seed / 4294967296)) >>> 0;
  const word = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  return () => ((word() >>> 6) * 67108864 + (word() >>> 6) + 0.5) / 4503599627370496;
}

function laplace(uniform) {
  const u = uniform() - 0.5;
  return -scale * Math.sign(u) * Math.log(1 - 2 * Math.abs(u));
}

function answer(request) {
  if (request.type === "hello") {
    // "double": JavaScript writes 1.0 as 1, which dpaudit would read as another outcome than 1.0.
    return { type: "hello", protocol: 1, name: "laplace.js", seeds: true, numbers: "double", claim: "eps=1" };
  }
  if (typeof request.input !== "number") {
    return { id: request.id, error: { kind: "TypeError", message: "the input is no number" } };
  }
  const uniform = generator(request.seed);
  return { id: request.id, outputs: Array.from({ length: request.size }, () => request.input + laplace(uniform)) };
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  process.stdout.write(JSON.stringify(answer(JSON.parse(line))) + "\n");
});
