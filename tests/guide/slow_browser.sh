# The guide's page: its types are checked, and it is used in a real Chromium (tests/browser/page.mjs).
# Where PRONY_PICTURES is set, pictures of it are left in the build, in pictures/. Those in docs/pictures come
# from pictures/docs, made of the store that PRONY_PICTURES names; empty: of the results that ship.

folder=tests/browser
skip() {
    echo "skip slow_browser.types: $1"
    echo "skip slow_browser.page: $1"
    exit 0
}

"$PRONY_BUILD/prony" guide --help >/dev/null 2>&1 || skip "no prony in this build"
[ -f "$PRONY_BUILD/guide/main.js" ] || skip "built without the guide"
for tool in node npm; do
    command -v $tool >/dev/null || skip "no $tool (Debian: apt install npm)"
done
if [ ! $folder/node_modules/.package-lock.json -nt $folder/package-lock.json ]; then
    (cd $folder && npm ci --no-audit --no-fund --loglevel=error) >&2 ||
        skip "npm ci failed in $folder; its packages need the network once"
    touch $folder/node_modules/.package-lock.json
fi

status=0
if $folder/node_modules/.bin/tsc -p src/guide/ui; then
    echo "ok   slow_browser.types"
else
    echo "FAIL slow_browser.types"
    status=1
fi

chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -z "$chromium" ]; then
    echo "skip slow_browser.page: no chromium (Debian: apt install chromium)"
    exit $status
fi
node $folder/page.mjs "$PRONY_BUILD/prony" "$chromium" ${PRONY_PICTURES+"$PRONY_BUILD/pictures"} \
    ${PRONY_PICTURES:+"$PRONY_PICTURES"} || status=1
exit $status
