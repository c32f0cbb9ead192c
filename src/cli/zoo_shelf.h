/* zoo_shelf.h: the zoo in a store, so that the guide, which knows no networks, lists and draws it.
 */
#ifndef PRONY_CLI_ZOO_SHELF_H
#define PRONY_CLI_ZOO_SHELF_H

#include "store/store.h"

/* Explains into the store each network of the zoo that it has nothing about, as an inference of one
 * sample, and those with a recipe of their own also as they are trained. A store without results
 * stays as it is: it was made to be empty. */
enum status zoo_shelf_fill(struct store *store);

#endif
