// network_layout.ts: where the boxes of a drawing are, and the way between them. Each row holds boxes
// that need only rows above it. What is read by a row further down has a lane of its own through the
// rows between, so that no line runs behind a box. Rows are ordered to cross few lines, and what
// belongs to one line (a chain of layers, a lane) stands at one place across all its rows.

export interface Item {
  row: number;
  width: number;
  box: number | null; // its number; a lane has none
  above: Item[];
  below: Item[];
  x: number; // of its middle
}

export interface Layout {
  rows: Item[][];
  width: number;
}

const mean = (numbers: number[]): number => numbers.reduce((sum, one) => sum + one, 0) / numbers.length;

// The row after the last of those it needs; what needs none stands right above its first reader.
function rowsOf(inputs: number[][]): number[] {
  const rows: number[] = [];
  const readers: number[] = inputs.map(() => Infinity); // the first reader's row
  inputs.forEach((needed, box) => {
    rows[box] = Math.max(-1, ...needed.map((one) => rows[one] ?? 0)) + 1;
    for (const one of needed) readers[one] = Math.min(readers[one] ?? Infinity, rows[box] ?? 0);
  });
  return rows.map((row, box) =>
    inputs[box]?.length === 0 && readers[box] !== Infinity ? (readers[box] ?? 1) - 1 : row,
  );
}

// Boxes, and lanes from each as far down as somebody reads it; all that read it share its lane.
function itemsOf(inputs: number[][], boxWidth: number, laneWidth: number): Item[][] {
  const rows = rowsOf(inputs);
  const places: Item[][] = Array.from({ length: Math.max(0, ...rows) + 1 }, () => []);
  const add = (row: number, width: number, box: number | null): Item => {
    const item: Item = { row, width, box, above: [], below: [], x: 0 };
    places[row]?.push(item);
    return item;
  };
  const join = (upper: Item, lower: Item) => {
    upper.below.push(lower);
    lower.above.push(upper);
  };
  const lines = rows.map((row, box) => [add(row, boxWidth, box)]); // a box and its lane, downwards
  inputs.forEach((needed, box) => {
    for (const one of needed) {
      const line = lines[one] ?? [];
      const steps = (rows[box] ?? 0) - (rows[one] ?? 0);
      while (line.length < steps) {
        const end = line[line.length - 1] as Item;
        const next = add(end.row + 1, laneWidth, null);
        join(end, next);
        line.push(next);
      }
      join(line[steps - 1] as Item, lines[box]?.[0] as Item);
    }
  });
  return places;
}

// How often lines cross between the rows as they are ordered.
function crossings(rows: Item[][]): number {
  let count = 0;
  rows.forEach((row, index) => {
    const next = new Map((rows[index + 1] ?? []).map((item, place) => [item, place]));
    const ends = row.map(({ below }) => below.map((item) => next.get(item) ?? 0));
    ends.forEach((left, place) => {
      for (const right of ends.slice(place + 1))
        for (const a of left) count += right.filter((b) => b < a).length;
    });
  });
  return count;
}

// Puts each item near the middle of those it is joined with, down and up, and keeps the best.
function order(rows: Item[][]): Item[][] {
  const SWEEPS = 8;
  let best = rows.map((row) => [...row]);
  const now = rows.map((row) => [...row]);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    const indices = [...now.keys()];
    for (const index of down ? indices : indices.reverse()) {
      const near = new Map((now[down ? index - 1 : index + 1] ?? []).map((item, place) => [item, place]));
      const wanted = new Map(
        (now[index] ?? []).map((item, place) => {
          const ends = down ? item.above : item.below;
          return [item, ends.length > 0 ? mean(ends.map((end) => near.get(end) ?? 0)) : place];
        }),
      );
      now[index]?.sort((a, b) => (wanted.get(a) ?? 0) - (wanted.get(b) ?? 0));
    }
    if (crossings(now) < crossings(best)) best = now.map((row) => [...row]);
  }
  return best;
}

// Items that stand one below the other: each with the middle one of those it is joined with, when
// that holds in both directions and no line joined so is crossed.
function blocksOf(rows: Item[][]): Item[][] {
  const blocks = new Map<Item, Item[]>();
  const middle = (items: Item[], row: Item[]): Item | undefined =>
    [...items].sort((a, b) => row.indexOf(a) - row.indexOf(b))[(items.length - 1) >> 1];
  rows.forEach((row, index) => {
    const upper = rows[index - 1] ?? [];
    let last = -1;
    for (const item of row) {
      const over = middle(item.above, upper);
      const place = over ? upper.indexOf(over) : -1;
      const joined = over && place > last && middle(over.below, row) === item;
      const block = (joined && blocks.get(over)) || [];
      if (joined) last = place;
      block.push(item);
      blocks.set(item, block);
    }
  });
  return [...new Set(blocks.values())];
}

// As far to the left as what stands left of them allows; then each, again and again, as near to what
// it is joined with as its neighbours allow.
function place(rows: Item[][], gap: number): void {
  const SWEEPS = 20;
  const blocks = blocksOf(rows);
  const left = new Map<Item, Item>();
  const right = new Map<Item, Item>();
  for (const row of rows)
    row.forEach((item, index) => {
      const next = row[index + 1];
      if (!next) return;
      left.set(next, item);
      right.set(item, next);
    });
  const apart = (a: Item, b: Item) => (a.width + b.width) / 2 + gap;
  const least = (block: Item[]) =>
    Math.max(...block.map((item) => {
      const other = left.get(item);
      return other ? other.x + apart(other, item) : -Infinity;
    }));
  const most = (block: Item[]) =>
    Math.min(...block.map((item) => {
      const other = right.get(item);
      return other ? other.x - apart(item, other) : Infinity;
    }));
  const move = (block: Item[], x: number) => block.forEach((item) => (item.x = x));
  for (let moved = true; moved; ) {
    moved = false;
    for (const block of blocks) {
      const x = Math.max(0, least(block));
      if (x > (block[0]?.x ?? 0)) {
        move(block, x);
        moved = true;
      }
    }
  }
  for (let sweep = 0; sweep < SWEEPS; sweep++)
    for (const block of sweep % 2 === 0 ? [...blocks].reverse() : blocks) {
      const ends = block
        .flatMap((item) => [...item.above, ...item.below])
        .filter((end) => !block.includes(end));
      if (ends.length === 0) continue;
      move(block, Math.min(Math.max(mean(ends.map(({ x }) => x)), least(block)), most(block)));
    }
}

// `inputs[i]` are the boxes that box i reads, all before it.
export function layOut(inputs: number[][], boxWidth: number, laneWidth: number, gap: number): Layout {
  const rows = order(itemsOf(inputs, boxWidth, laneWidth));
  place(rows, gap);
  const items = rows.flat();
  const start = Math.min(0, ...items.map(({ x, width }) => x - width / 2));
  for (const item of items) item.x = Math.round(item.x - start);
  return { rows, width: Math.max(0, ...items.map(({ x, width }) => x + width / 2)) };
}
