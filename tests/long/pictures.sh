# The pictures of the guide, as docs/pictures shows them, are left in build/pictures/docs; the page's tests
# run on the way (tests/guide/slow_browser.sh).

PRONY_PICTURES=${PRONY_PICTURES-} exec sh tests/guide/slow_browser.sh
