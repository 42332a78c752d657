// needs: go github.com/bsm/redislock@v0.9.4 github.com/redis/go-redis/v9@v9.23.0
// nodes: one
// lacks: token (it is text)
// has: wait

// bsm/redislock: every step is an EVALSHA, acquiring too.
package main

import (
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"story"
)

type client struct {
	locker *redislock.Client
	lock   *redislock.Lock
}

// Whether it was done. That the lock is another's is an answer; a node that fails is none.
func answer(err error) (any, error) {
	if errors.Is(err, redislock.ErrNotObtained) || errors.Is(err, redislock.ErrLockNotHeld) {
		return false, nil
	}
	return err == nil, err
}

func (c *client) obtain(key string, ttl time.Duration, options *redislock.Options) (any, error) {
	lock, err := c.locker.Obtain(story.Background, key, ttl, options)
	if err == nil {
		c.lock = lock
	}
	return answer(err)
}

func (c *client) Acquire(key string, ttl time.Duration, _ string) (any, error) {
	return c.obtain(key, ttl, nil)
}

func (c *client) Release() (any, error) { return answer(c.lock.Release(story.Background)) }

func main() {
	address := story.Nodes()[0]
	c := &client{locker: redislock.New(redis.NewClient(&redis.Options{Addr: address}))}
	story.Serve(story.Title("github.com/bsm/redislock", "github.com/redis/go-redis/v9"), c, story.Checks{
		"wait": func(words ...string) (any, error) {
			options := redislock.Options{RetryStrategy: redislock.LinearBackoff(20 * time.Millisecond)}
			return c.obtain(words[0], story.Milliseconds(words[1]), &options)
		},
		"extend": func(words ...string) (any, error) {
			return answer(c.lock.Refresh(story.Background, story.Milliseconds(words[0]), nil))
		},
		"query": func(...string) (any, error) { return c.lock.TTL(story.Background) },
	})
}
