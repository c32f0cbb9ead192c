# The form of README.md, CONTRIBUTING.md, docs/ and the READMEs of folders: prose of at most 100 columns (tables
# and code may be longer), a page that answers its question in at most 200 lines, links that lead somewhere, names
# of sources that are there. docs/notebook/ may be longer.

pages() {
    (cd "$1" && ls README.md CONTRIBUTING.md docs/*.md docs/*/*.md 2>/dev/null
        find src tests -name node_modules -prune -o -name README.md -print 2>/dev/null)
}

# Longer than 200 lines for a reason: a whole backend as one listing.
long='^docs/adding-a-backend\.md$'

# "PAGE:LINE: TEXT" of lines of prose that are too long.
wide_lines() { # TREE
    pages "$1" | while read -r page; do
        awk '/^```/ { code = !code } { print code || /^(\||    |<!--|!\[)/ ? "" : $0 }' "$1/$page" |
            LC_ALL=C.UTF-8 grep -nE '^.{101,}$' | sed "s|^|$page:|"
    done
}

long_pages() { # TREE
    pages "$1" | grep -vE "^docs/notebook/|$long" | (cd "$1" && xargs wc -l) | awk '$2 != "total" && $1 > 200'
}

# "PAGE: TARGET" of links to files or headings that are not there.
broken_links() { # TREE
    pages "$1" | (cd "$1" && xargs awk '
        function folder(path) { return sub(/[^\/]*$/, "", path) ? path : "" }
        function joined(base, path) {
            path = base path
            while (sub(/[^\/]+\/\.\.\//, "", path))
                ;
            return path
        }
        function exists(path, line, found) {
            found = (getline line < path) >= 0
            close(path)
            return found
        }
        FNR == 1 { code = 0; pages[FILENAME] = 1 }
        /^```/ { code = !code }
        code { next }
        /^#/ {
            slug = tolower($0)
            sub(/^#+ */, "", slug)
            gsub(/[^a-z0-9 _-]/, "", slug)
            gsub(/ /, "-", slug)
            anchors[FILENAME, slug] = 1
        }
        {
            line = $0
            while (match(line, /\]\([^)]+\)/)) {
                links[++count] = FILENAME SUBSEP substr(line, RSTART + 2, RLENGTH - 3)
                line = substr(line, RSTART + RLENGTH)
            }
        }
        END {
            for (i = 1; i <= count; i++) {
                split(links[i], link, SUBSEP)
                if (link[2] ~ /^https?:/)
                    continue
                anchor = path = link[2]
                if (!sub(/^[^#]*#/, "", anchor)) anchor = ""
                sub(/#.*/, "", path)
                path = path == "" ? link[1] : joined(folder(link[1]), path)
                if (path in pages ? anchor != "" && !((path, anchor) in anchors) : !exists(path))
                    print link[1] ": " link[2]
            }
        }')
}

# "PAGE: NAME" of sources of ours that are named and are not there. docs/adding-*.md make new ones.
absent_sources() { # TREE
    (cd "$1" && {
        find src tests include peers -name node_modules -prune -o -type f -print 2>/dev/null
        echo stdint.h
    } | sed 's|.*/||' | awk '
        FILENAME == "-" { there[$0] = 1; next }
        {
            while (match($0, /`[a-z0-9_\/.]+\.(c|h|cu|def|ts|sh)`/)) {
                name = substr($0, RSTART + 1, RLENGTH - 2)
                sub(/.*\//, "", name)
                if (!(name in there)) print FILENAME ": " name
                $0 = substr($0, RSTART + RLENGTH)
            }
        }' - $(pages . | grep -v '^docs/adding-'))
}

status=0
report() { # NAME FOUND
    if [ -n "$2" ]; then
        printf '%s\nFAIL check_docs.%s\n' "$2" "$1"
        status=1
    else
        echo "ok   check_docs.$1"
    fi
}
report lines_of_100_columns "$(wide_lines .)"
report pages_of_200_lines "$(long_pages .)"
report links_lead_somewhere "$(broken_links .)"
report sources_are_there "$(absent_sources .)"

planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT
mkdir -p "$planted/docs"
{
    printf '# One\n[a](two.md) [b](#two) [c](#one) `gone.c` %s\n' "$(printf '%0120d' 0)"
    yes | head -n 200
} >"$planted/docs/one.md"
missed=
[ "$(wide_lines "$planted" | wc -l)" -eq 1 ] || missed="$missed wide_lines"
[ "$(long_pages "$planted" | wc -l)" -eq 1 ] || missed="$missed long_pages"
[ "$(broken_links "$planted" | wc -l)" -eq 2 ] || missed="$missed broken_links"
[ "$(absent_sources "$planted" | wc -l)" -eq 1 ] || missed="$missed absent_sources"
report sees_what_is_planted "${missed:+not seen:$missed}"
exit $status
