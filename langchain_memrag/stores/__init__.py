"""Where bytes live: the roles that a store can play, and the engines that play them."""
