"""All trials, with their counts."""

from torture_faults import kills, scan_faults
from torture_reading import mutated_skills, planted_secrets, swapped_links
from torture_reloads import calls_under_reloads, growth, histories
from torture_syscalls import failing_calls
from torture_trial import Trial

TRIALS = (
    Trial("random edits, hot == cold", histories, 10_000, 60),
    Trial("mutated SKILL.md", mutated_skills, 1_000_000, 10_000),
    Trial("calls under reloads", calls_under_reloads, 1_000_000, 10_000),
    Trial("reads under a swapping attacker", swapped_links, 1_000_000, 10_000),
    Trial("kill -9 at writes (names, pins, config, cache, trust, lock)", kills, 200, 4),
    Trial("failing calls of a scan", scan_faults, 100_000, 60),
    Trial("failing calls of the system, by strace", failing_calls, 1_000, 1, "strace"),
    Trial("reloads without growth", growth, 10_000, 120),
    Trial("planted secrets", planted_secrets, 1_000, 70),
)
