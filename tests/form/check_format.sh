# The sources are what clang-format makes of them.
sources() {
    find src tests include -name node_modules -prune -o \
        \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) -print 2>/dev/null
}
if ! clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
    echo "skip check_format: clang-format 14 is not installed"
    exit 0
fi
if sources | xargs clang-format --dry-run -Werror; then
    echo "ok   check_format"
else
    echo "FAIL check_format (make format)"
    exit 1
fi
