#!/usr/bin/env bash
# Counts the instructions of each step in benches/instructions/src/steps.rs with callgrind, and compares
# them with expected.txt. A step that costs over 5 % more fails: make the change cheaper, or store the new
# counts with the change.
#
#   benches/instructions/check.sh           compares
#   benches/instructions/check.sh --store   replaces expected.txt
#
# The program has the dev profile, because the tests build it anyway. Counts depend on the compiler and its
# target: when expected.txt names others, nothing is compared.
set -euo pipefail
cd "$(dirname "$0")/../.."
expected=benches/instructions/expected.txt
made_with="$(rustc --version | cut -d' ' -f1,2) on $(rustc -vV | sed -n 's/^host: //p'), dev profile"
stored_with=$(sed -n 's/^made with //p' $expected)
if [ "${1:-}" != --store ] && [ "$made_with" != "$stored_with" ]; then
    echo "SKIPPED: $expected was made with $stored_with, and this is $made_with"
    exit
fi
cargo build --workspace --locked --quiet --bins --tests
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The C library chooses its copy functions by the CPU.
GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-ERMS,-FSRM \
    valgrind --tool=callgrind --callgrind-out-file="$work/calls" \
    "${CARGO_TARGET_DIR:-target}/debug/granary-instructions" >"$work/log" 2>&1 ||
    { tail -20 "$work/log"; exit 1; }
{
    echo "made with $made_with"
    callgrind_annotate --inclusive=yes --threshold=100 --auto=no "$work/calls" |
        sed -n 's/^ *\([0-9,]*\) .*:granary_instructions::steps::\([a-z_]*\) \[.*/\2 \1/p' | tr -d , | sort
} >"$work/seen"
if [ "${1:-}" = --store ]; then
    cp "$work/seen" $expected
    cat $expected
    exit
fi
sed 1d "$work/seen" | awk -v file=$expected '
    BEGIN { while ((getline line < file) > 0) { split(line, part, " "); expected[part[1]] = part[2] } }
    {
        change = expected[$1] ? 100 * ($2 / expected[$1] - 1) : 100
        note = ""
        if (change > 5) { note = "  FAILED"; failed++ }
        if (change < -5) { note = "  cheaper"; cheaper++ }
        printf "%-16s %12d expected %12d seen %+7.2f %%%s\n", $1, expected[$1], $2, change, note
        seen[$1] = 1
    }
    END {
        delete expected["made"]
        for (step in expected) if (!seen[step]) { print step " was not seen"; failed++ }
        command = "benches/instructions/check.sh --store"
        if (cheaper) print "Steps are cheaper: store their counts with " command
        if (failed) print "Steps are more expensive by over 5 %: fix the change, or store their counts with " command
        exit (failed > 0)
    }'
