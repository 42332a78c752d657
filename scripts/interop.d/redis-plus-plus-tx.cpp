// needs: pkg-config redis++ hiredis
// away: down=fails quarantine=fails (any error of a node is raised)
// lacks: extend token (it says that it extended a lock that it lost)

// redis-plus-plus's RedMutexTx on all nodes: SET NX PX, and WATCH and MULTI. Who waits leaves behind
// what a try has got of a minority: the story has nobody wait.

#define MUTEX RedMutexTx
#include "redis-plus-plus.cpp"
