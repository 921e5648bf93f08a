#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Medians, quartiles, disturbed rounds, and the format of a table."""
import unittest

import summary


class Summary(unittest.TestCase):
    def test_quartiles_lie_within_the_values(self):
        self.assertEqual(summary.quartiles_of([4, 1, 3, 2]), [1.75, 2.5, 3.25])
        self.assertEqual(summary.quartiles_of([7]), [7, 7, 7])

    def test_ratios_are_taken_within_a_round(self):
        row = summary.compared({"mpich": [2.0, 6.0, 9.0], "bestride": [1.0, 2.0, 9.0]}, "us", 10)
        self.assertEqual(row, {"mpich_us": 60, "bestride_us": 20, "ratio": 2, "ratio_q1": 1.5, "ratio_q3": 2.5, "rounds": 3})

    def test_disturbed_rounds_are_left_out(self):
        def pair(mpich, bestride):
            return {"mpich": {"middle": mpich, "fastest": 1}, "bestride": {"middle": bestride, "fastest": 1}}

        self.assertEqual(summary.undisturbed_times([pair(1, 2), pair(4, 1), pair(3, 3)], "middle", "fastest"),
                         ({"mpich": [1, 3], "bestride": [2, 3]}, False))
        self.assertEqual(summary.undisturbed_times([pair(1, 2), pair(4, 1), pair(3, 9)], "middle", "fastest"), ({"mpich": [1], "bestride": [1]}, True))

    def test_a_table(self):
        rows = [{"case": "a\tb", "us": 12778.66, "us_q1": 12778.66, "fastest": False, "rounds": 3},
                {"case": "c", "us": 0.000012345, "us_q1": 1.0, "fastest": True, "rounds": 3, "kib": 5}]
        self.assertEqual(summary.table_text("program --rounds 3", rows).splitlines(), [
            summary.LICENSE, "# program --rounds 3; rounds: 3", "case\tus\tus_q1\tfastest\tkib", "a b\t12780\t12800", "c\t1.234e-05\t1\tyes\t5"])

    def test_one_row_has_all_its_columns(self):
        self.assertEqual(summary.table_text("program", [{"case": "a", "ratio": 2.0}]).splitlines()[2:], ["case\tratio", "a\t2"])


if __name__ == "__main__":
    unittest.main()
