// needs: pkg-config redis++ hiredis
// away: down=fails quarantine=fails (any error of a node is raised)
// lacks: extend token expiry (it says that it extended a lock that it lost, and what a try gets of a minority it keeps)

// redis-plus-plus's RedMutexTx on all nodes: SET NX PX, and WATCH and MULTI. Nobody waits in its
// story: who tries leaves something behind.

#define MUTEX RedMutexTx
#include "redis-plus-plus.cpp"
