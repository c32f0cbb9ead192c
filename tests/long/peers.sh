# All that is asked of the peers that ship (tests/bench/slow_peers.sh): about 3 minutes.

PEERS=all exec sh tests/bench/slow_peers.sh
