// needs: go github.com/redis/rueidis@v1.0.79
// lacks: refusal (its connections, which it opens as it goes, ask for CLIENT CAPA, which Redis does not know)
// also: login cached

// rueidis by hand with its default options: RESP3, CLIENT TRACKING ON OPTIN, one connection for all.
package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"story"
)

type node struct{ rueidis.Client }

func (n node) Set(key, token string, ttl time.Duration) (bool, error) {
	command := n.B().Set().Key(key).Value(token).Nx()
	var err error
	if ttl == 0 {
		err = n.Do(story.Background, command.Build()).Error()
	} else {
		err = n.Do(story.Background, command.PxMilliseconds(ttl.Milliseconds()).Build()).Error()
	}
	if rueidis.IsRedisNil(err) {
		return false, nil
	}
	return err == nil, err
}

func (n node) Get(key string) (string, error) {
	value, err := n.Do(story.Background, n.B().Get().Key(key).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return "", nil
	}
	return value, err
}

func (n node) TTL(key string) (time.Duration, error) {
	left, err := n.Do(story.Background, n.B().Pttl().Key(key).Build()).AsInt64()
	return time.Duration(left) * time.Millisecond, err
}

func (n node) Eval(script, key string, arguments ...string) (int64, error) {
	return rueidis.NewLuaScript(script).Exec(story.Background, n.Client, []string{key}, arguments).AsInt64()
}

func open(address, password string) (story.Node, error) {
	option := rueidis.ClientOption{InitAddress: []string{address}, Password: password}
	if password != "" {
		option.SelectDB = 3
	}
	client, err := rueidis.NewClient(option)
	return node{client}, err
}

// What the driver keeps is forgotten when another client writes it, and when it expires.
func cached(...string) (any, error) {
	reader := story.Must(open(story.Nodes()[0], "")).(node)
	writer := story.Must(open(story.Nodes()[0], "")).(node)
	defer reader.Close()
	defer writer.Close()
	read := func() rueidis.RedisResult {
		return reader.DoCache(story.Background, reader.B().Get().Key("interop:cached").Cache(), time.Minute)
	}
	set := func(value string) error {
		command := writer.B().Set().Key("interop:cached").Value(value).PxMilliseconds(500).Build()
		return writer.Do(story.Background, command).Error()
	}
	// Polls until the reader reads the value, and from its own memory the second time.
	sees := func(value string) error {
		limit, cancel := context.WithTimeout(story.Background, 2*time.Second)
		defer cancel()
		for limit.Err() == nil {
			if read, _ := read().ToString(); read == value {
				return nil
			}
			time.Sleep(time.Millisecond)
		}
		return fmt.Errorf("another client's %s was not seen", strconv.Quote(value))
	}
	for _, value := range []string{"first", "second", ""} {
		if value != "" {
			if err := set(value); err != nil {
				return nil, err
			}
		}
		if err := sees(value); err != nil {
			return nil, err
		}
		// It does not keep that there is nothing.
		if value != "" && !read().IsCacheHit() {
			return nil, fmt.Errorf("%s was not kept", strconv.Quote(value))
		}
	}
	return true, nil
}

func main() {
	story.ServeByHand(story.Title("github.com/redis/rueidis"), open, story.Checks{"cached": cached})
}
