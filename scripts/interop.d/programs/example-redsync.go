// needs: go github.com/go-redsync/redsync/v4@v4.18.1 github.com/redis/go-redis/v9@v9.23.0

// The example of docs/examples.md.
package main

import (
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	driver "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"story"
)

func report(nodes []string) error {
	pools := []driver.Pool{}
	for _, node := range nodes {
		pools = append(pools, goredis.NewPool(redis.NewClient(&redis.Options{Addr: node})))
	}
	mutex := redsync.New(pools...).NewMutex("nightly-report", redsync.WithExpiry(30*time.Second))
	if err := mutex.Lock(); err != nil {
		return err
	}
	fmt.Println("nobody else writes the report before", mutex.Until())
	_, err := mutex.Unlock()
	return err
}

func main() {
	if err := report(story.Nodes()); err != nil {
		panic(err)
	}
	fmt.Println(story.Title("github.com/go-redsync/redsync/v4", "github.com/redis/go-redis/v9"), "as docs/examples.md shows it")
}
