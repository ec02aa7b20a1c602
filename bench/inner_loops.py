"""What the innermost loops of compiled libraries cost, by llvm-mca: `inner_loops.py LIBRARY... [--cpu NAME]... [--least N]`.

For every innermost loop with at least N fused multiply-adds of the widest vectors it prints their number, how many
instructions touch vectors on the stack (spills), the cycles of one pass, and multiply-adds per cycle. No such processor is
needed: a simulation without cache misses, which tells whether a register tile keeps the units busy.
"""

import argparse
import re
import subprocess

ITERATIONS = 200


def functions(library):
    """(name, [(address, instruction)]) of each."""
    command = ["objdump", "-d", "--no-show-raw-insn", library]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    name, body = None, []
    for line in listed.splitlines():
        if match := re.match(r"^[0-9a-f]+ <(.*)>:", line):
            if body:
                yield name, body
            name, body = match[1], []
        elif match := re.match(r"^\s*([0-9a-f]+):\s+(\S.*)", line):
            body.append((int(match[1], 16), match[2].split("#")[0].strip()))
    if body:
        yield name, body


def innermost_loops(body):
    """Instructions between the target of a jump back and the jump, where no other such pair lies inside."""
    places = {address: index for index, (address, _) in enumerate(body)}
    pairs = []
    for index, (_, text) in enumerate(body):
        match = re.match(r"j\w+\s+([0-9a-f]+)", text)
        start = places.get(int(match[1], 16)) if match else None
        if start is not None and start <= index:
            pairs.append((start, index))
    for start, end in pairs:
        if not any((a, b) != (start, end) and start <= a and b <= end for a, b in pairs):
            yield [text for _, text in body[start : end + 1]]


def cycles(loop, cpu):
    text = "".join(re.sub(r"^(j\w+)\s.*", r"\1 0", line) + "\n" for line in loop if "nop" not in line)
    command = ["llvm-mca-19", f"-mcpu={cpu}", "-mtriple=x86_64", f"-iterations={ITERATIONS}"]
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return int(re.search(r"Total Cycles:\s+(\d+)", result)[1]) / ITERATIONS


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("libraries", nargs="+")
    parser.add_argument("--cpu", action="append", help="as llvm-mca names it (default: skylake-avx512)")
    parser.add_argument("--least", type=int, default=8, help="multiply-adds of a loop that is shown")
    args = parser.parse_args()
    cpus = args.cpu or ["skylake-avx512"]
    for library in args.libraries:
        for name, body in functions(library):
            for loop in innermost_loops(body):
                width = next((w for w in ("zmm", "ymm", "xmm") if any(w in text for text in loop)), "none")
                adds = sum(text.startswith("vfm") and width in text for text in loop)
                if adds < args.least:
                    continue
                spills = sum(width in text and "(%rsp" in text for text in loop)
                costs = [(cpu, cycles(loop, cpu)) for cpu in cpus]
                shown = "".join(
                    f"; {cpu} {cost:.2f} cycles, {adds / cost:.2f} a cycle" for cpu, cost in costs
                )
                print(
                    f"{name}: {adds} multiply-adds of {width} in {len(loop)} instructions, {spills} spilled{shown}"
                )


if __name__ == "__main__":
    main()
