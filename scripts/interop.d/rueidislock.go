// needs: go github.com/redis/rueidis@v1.0.79
// nodes: one
// each: OPTOUT NOLOOP
// lacks: token extend query
// has: wait watchdog
// prefix: rueidislock:0:

// rueidislock: it extends its locks by itself, and hears by CLIENT TRACKING that one is lost or free.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"story"
)

type client struct {
	locker rueidislock.Locker
	cancel context.CancelFunc
}

// A locker, whose locks end so long after it has last extended them.
func locker(validity time.Duration) rueidislock.Locker {
	return story.Must(rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: story.Nodes()[:1]},
		KeyMajority:    1,
		KeyValidity:    validity,
		NoLoopTracking: story.Variant() == "NOLOOP",
		// By its default it gives a node 20 ms, which a busy machine needs for itself.
		TryNextAfter: 5 * time.Second,
	}))
}

type try func(ctx context.Context, name string) (context.Context, context.CancelFunc, error)

// It extends its locks for as long as their context lives.
func (c *client) lock(try try, limit context.Context, name string) (any, error) {
	_, cancel, err := try(limit, name)
	if errors.Is(err, rueidislock.ErrNotLocked) {
		return false, nil
	}
	c.cancel = cancel
	return err == nil, err
}

func (c *client) Release() (any, error) {
	c.cancel()
	return nil, nil
}

// A lock that ends by itself: its context lives no longer than the TTL.
func (c *client) Acquire(key string, ttl time.Duration, _ string) (any, error) {
	limit, cancel := context.WithTimeout(story.Background, ttl)
	time.AfterFunc(ttl, cancel)
	return c.lock(c.locker.TryWithContext, limit, key)
}

func main() {
	c := &client{locker: locker(time.Minute)}
	story.Serve("rueidislock of "+story.Title("github.com/redis/rueidis"), c, story.Checks{
		"wait": func(words ...string) (any, error) {
			return c.lock(c.locker.WithContext, story.Background, words[0])
		},
		"watch": func(words ...string) (any, error) {
			return c.lock(locker(story.Milliseconds(words[1])).TryWithContext, story.Background, words[0])
		},
	})
}
