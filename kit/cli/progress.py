"""What a user sees while work runs: a bar on a terminal, one quiet line per step otherwise, nothing with --json."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Any, TextIO


@dataclass
class Progress:
    """Counts named steps; `seconds` holds how long each took, for run.json."""

    total: int
    label: str = ""
    quiet: bool = False
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._began = self._last = time.perf_counter()
        self._name: str | None = None
        self._steps = 0
        self._bar: Any = None
        if not self.quiet and self.stream.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=self.total, file=self.stream, leave=False, bar_format="{desc} {bar} {elapsed}")

    def __call__(self, step: str) -> None:
        """Begin a step; the one before it ends here."""
        self._end_step()
        self._name = step
        if self._bar is not None:
            self._bar.set_description_str(f"{self.label}{step}"[:60].ljust(34))
        elif not self.quiet:
            print(f"{time.perf_counter() - self._began:6.1f} s  {self.label}{step}", file=self.stream, flush=True)

    def part(self, done: int, total: int) -> None:
        """How much of the step at hand is done; shown on a terminal only."""
        if self._bar is not None:
            self._bar.set_description_str(f"{self.label}{self._name} {done}/{total}"[:60].ljust(34))
            self._bar.n = self._steps + done / max(total, 1)
            self._bar.refresh()

    def _end_step(self) -> None:
        now = time.perf_counter()
        if self._name is not None:
            self.seconds[self._name] = round(self.seconds.get(self._name, 0.0) + now - self._last, 3)
            self._steps += 1
            if self._bar is not None:
                self._bar.n = self._steps
                self._bar.refresh()
        self._last = now

    def close(self) -> None:
        """End the last step and take the bar off the terminal."""
        self._end_step()
        self._name = None
        if self._bar is not None:
            self._bar.close()
