# The walk-throughs of docs/adding-*.md, carried out, built and run (tests/form/adding.sh): about 90 s.

ADDING=run exec sh tests/form/adding.sh
