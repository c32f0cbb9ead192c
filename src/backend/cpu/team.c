/* team.c: see team.h. */
#include "backend/cpu/team.h"

/* Less than this is done before another thread has woken up: about 10 µs of multiply-adds, or of
 * reading from L2. */
struct team_worth team_worth = {.flop = 1 << 20, .bytes = 512 << 10};
