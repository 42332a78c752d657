// needs: go github.com/redis/go-redis/v9@v9.23.0
// each: RESP2 RESP3
// also: login multi

// go-redis by hand: SET NX PX, EVALSHA with EVAL on NOSCRIPT, and a transaction.
package main

import (
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"story"
)

type node struct{ *redis.Client }

func (n node) Set(key, token string, ttl time.Duration) (bool, error) {
	return n.Client.SetNX(story.Background, key, token, ttl).Result()
}

func (n node) Get(key string) (string, error) {
	value, err := n.Client.Get(story.Background, key).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return value, err
}

func (n node) TTL(key string) (time.Duration, error) {
	return n.Client.PTTL(story.Background, key).Result()
}

func (n node) Eval(script, key string, arguments ...string) (int64, error) {
	words := []any{}
	for _, argument := range arguments {
		words = append(words, argument)
	}
	return redis.NewScript(script).Run(story.Background, n.Client, []string{key}, words...).Int64()
}

func open(address, password string) (story.Node, error) {
	options := &redis.Options{Addr: address, Password: password, Protocol: 2}
	if story.Variant() == "RESP3" {
		options.Protocol = 3
	}
	if password != "" {
		options.DB = 3
	}
	return node{redis.NewClient(options)}, nil
}

// A lock, its content and its end in one transaction, and one that another client has spoilt.
func multi(...string) (any, error) {
	opened, _ := open(story.Nodes()[0], "")
	client := opened.(node).Client
	defer client.Close()
	var set *redis.BoolCmd
	var get *redis.StringCmd
	var deleted *redis.IntCmd
	_, err := client.TxPipelined(story.Background, func(pipe redis.Pipeliner) error {
		set = pipe.SetNX(story.Background, "interop:multi", "token", time.Minute)
		get = pipe.Get(story.Background, "interop:multi")
		deleted = pipe.Del(story.Background, "interop:multi")
		return nil
	})
	if err != nil || !set.Val() || get.Val() != "token" || deleted.Val() != 1 {
		return set.Val() && get.Val() == "token" && deleted.Val() == 1, err
	}
	err = client.Watch(story.Background, func(watched *redis.Tx) error {
		if err := client.Set(story.Background, "interop:multi", "another's", time.Second).Err(); err != nil {
			return err
		}
		_, err := watched.TxPipelined(story.Background, func(pipe redis.Pipeliner) error {
			return pipe.Del(story.Background, "interop:multi").Err()
		})
		return err
	}, "interop:multi")
	if !errors.Is(err, redis.TxFailedErr) {
		return false, err
	}
	return client.Del(story.Background, "interop:multi").Val() == 1, nil
}

func main() {
	story.ServeByHand(story.Title("github.com/redis/go-redis/v9"), open, story.Checks{"multi": multi})
}
