#!/usr/bin/env python3
"""terminal.py COLUMNS ROWS FOLDER COMMAND…: runs it on a terminal of that size.

FOLDER/raw gets every byte, FOLDER/end the screen as it is left, FOLDER/seen each line that was ever
shown. With INTERRUPT=PART in the environment Ctrl-C is typed once that text has been shown. Ends
with the command's status."""
import fcntl
import os
import pty
import struct
import sys
import termios


class Screen:
    """What a terminal shows; it knows the sequences that prony sends, and no others."""

    def __init__(self, columns):
        self.columns, self.lines, self.row, self.column = columns, [""], 0, 0
        self.seen, self.unknown, self.sequence = set(), [], ""

    def put(self, character):
        if self.column >= self.columns:
            self.newline()
            self.column = 0
        line = self.lines[self.row].ljust(self.column)
        self.lines[self.row] = line[: self.column] + character + line[self.column + 1 :]
        self.column += 1

    def newline(self):
        self.seen.update(self.lines)
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append("")

    def obey(self, sequence):
        if sequence == "[K":
            self.lines[self.row] = self.lines[self.row][: self.column]
        elif sequence == "[J":
            self.seen.update(self.lines)
            del self.lines[self.row + 1 :]
            self.lines[self.row] = self.lines[self.row][: self.column]
        elif sequence == "[A":
            self.row = max(0, self.row - 1)
        elif not sequence.endswith("m"):
            self.unknown.append(sequence)

    def feed(self, text):
        for character in text:
            if self.sequence:
                self.sequence += character
                if character.isalpha():
                    self.obey(self.sequence[1:])
                    self.sequence = ""
            elif character == "\033":
                self.sequence = character
            elif character == "\r":
                self.seen.update(self.lines)
                self.column = 0
            elif character == "\n":
                self.newline()
            else:
                self.put(character)


def main():
    columns, rows, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    interrupt = os.environ.pop("INTERRUPT", None)
    child, terminal = pty.fork()
    if child == 0:
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(1, termios.TIOCSWINSZ, size)
        os.environ.setdefault("TERM", "xterm")
        os.execvp(sys.argv[4], sys.argv[4:])
    screen, raw, rest = Screen(columns), b"", b""
    while True:
        try:
            got = os.read(terminal, 65536)
        except OSError:
            break
        if not got:
            break
        raw, rest = raw + got, rest + got
        text = rest.decode("utf-8", "ignore")
        rest = b"" if text.encode() == rest else rest[len(text.encode()) :]
        screen.feed(text)
        if interrupt and interrupt.encode() in raw:
            os.write(terminal, b"\x03")
            interrupt = None
    _, status = os.waitpid(child, 0)
    screen.seen.update(screen.lines)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "raw"), "wb") as file:
        file.write(raw)
    for name, lines in (("end", screen.lines), ("seen", sorted(screen.seen))):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write("\n".join(line.rstrip() for line in lines) + "\n")
    if screen.unknown:
        sys.exit("terminal.py: unknown sequences " + repr(screen.unknown))
    sys.exit(os.waitstatus_to_exitcode(status) % 256)


main()
