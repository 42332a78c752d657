// needs: go github.com/go-redsync/redsync/v4@v4.18.1 github.com/redis/go-redis/v9@v9.23.0 github.com/redis/rueidis/rueidiscompat@v1.0.79
// away: down=fails quarantine=fails (on go-redis it works; rueidis connects to every node as it is made, and asks one that loads again and again)
// each: go-redis rueidis
// lacks: token
// has: wait

// redsync: SET NX PX on every node, EVALSHA with EVAL on NOSCRIPT, on two of its drivers.
package main

import (
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	driver "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	redsyncrueidis "github.com/go-redsync/redsync/v4/redis/rueidis"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"

	"story"
)

type client struct {
	sync  *redsync.Redsync
	mutex *redsync.Mutex
}

// Whether it was done. That the lock is another's, or has ended, is an answer; a node that fails is none.
func answer(err error) (any, error) {
	var taken *redsync.ErrTaken
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &taken), errors.Is(err, redsync.ErrFailed), errors.Is(err, redsync.ErrExtendFailed),
		errors.Is(err, redsync.ErrLockAlreadyExpired):
		return false, nil
	}
	return nil, err
}

func (c *client) Acquire(key string, ttl time.Duration, _ string) (any, error) {
	c.mutex = c.sync.NewMutex(key, redsync.WithExpiry(ttl))
	return answer(c.mutex.TryLock())
}

func (c *client) Release() (any, error) {
	_, err := c.mutex.Unlock()
	return answer(err)
}

func (c *client) extend(words ...string) (any, error) {
	redsync.WithExpiry(story.Milliseconds(words[0])).Apply(c.mutex)
	_, err := c.mutex.Extend()
	return answer(err)
}

func (c *client) wait(words ...string) (any, error) {
	c.mutex = c.sync.NewMutex(words[0], redsync.WithExpiry(story.Milliseconds(words[1])),
		redsync.WithTries(10_000), redsync.WithRetryDelay(20*time.Millisecond))
	return answer(c.mutex.Lock())
}

func (c *client) query(...string) (any, error) {
	valid, err := c.mutex.Valid()
	// A majority decides, and the error is of a node that is away.
	if valid || err == nil {
		return valid, nil
	}
	return answer(err)
}

func pool(address string) driver.Pool {
	if story.Variant() == "go-redis" {
		return goredis.NewPool(redis.NewClient(&redis.Options{Addr: address}))
	}
	option := rueidis.ClientOption{InitAddress: []string{address}}
	return redsyncrueidis.NewPool(rueidiscompat.NewAdapter(story.Must(rueidis.NewClient(option))))
}

func main() {
	c := &client{sync: redsync.New(story.Each(pool)...)}
	title := story.Title("github.com/go-redsync/redsync/v4", "github.com/redis/go-redis/v9", "github.com/redis/rueidis")
	story.Serve(title, c, story.Checks{
		"extend": c.extend,
		"wait":   c.wait,
		"query":  c.query,
	})
}
