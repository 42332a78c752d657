// Package story drives a Go library by the lines that story.py describes.
package story

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Release is the release script of the documented algorithm, for the clients that are no lock libraries.
const Release = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) end return 0"

// Extend is the same condition before a new TTL.
const Extend = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) end return 0"

// Background is the context of every call: the libraries keep their own time limits.
var Background = context.Background()

// Client is one holder of at most one lock. A reply is true or false for `yes` or `no`, nil for `done`, or a number.
type Client interface {
	Acquire(key string, ttl time.Duration, token string) (any, error)
	Release() (any, error)
}

// Checks are the requests that not every client knows, by name; the words are those after the name.
type Checks map[string]func(words ...string) (any, error)

// Nodes are the addresses of the nodes.
func Nodes() []string { return strings.Split(os.Getenv("INTEROP_NODES"), ",") }

// Variant is the name that the adapter was started with, or "".
func Variant() string {
	if len(os.Args) < 2 {
		return ""
	}
	return os.Args[1]
}

// Each makes something for every node.
func Each[T any](make func(address string) T) []T {
	made := []T{}
	for _, address := range Nodes() {
		made = append(made, make(address))
	}
	return made
}

// Must is for the start, where an error ends the adapter.
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Milliseconds reads a TTL.
func Milliseconds(word string) time.Duration {
	return time.Duration(Must(strconv.Atoi(word))) * time.Millisecond
}

// Votes counts the nodes that do it; an error ends the count.
func Votes[T any](nodes []T, do func(T) (bool, error)) (any, error) {
	votes := 0
	for _, node := range nodes {
		done, err := do(node)
		if err != nil {
			return nil, err
		}
		if done {
			votes++
		}
	}
	return votes, nil
}

// Title is "name version" of each module.
func Title(modules ...string) string {
	info, _ := debug.ReadBuildInfo()
	titles := []string{}
	for _, module := range modules {
		for _, dependency := range info.Deps {
			if dependency.Path == module {
				name := strings.Split(strings.TrimPrefix(module, "github.com/"), "/")
				titles = append(titles, name[1]+" "+strings.TrimPrefix(dependency.Version, "v"))
			}
		}
	}
	return strings.Join(titles, " on ")
}

// Serve replies to each line until the input ends.
func Serve(title string, client Client, checks Checks) {
	fmt.Println("ready", title)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Split(lines.Text(), " ")
		fmt.Println(strings.Join(strings.Fields(reply(client, checks, words)), " "))
	}
}

func reply(client Client, checks Checks, words []string) string {
	var value any
	var err error
	switch check := checks[words[0]]; {
	case words[0] == "acquire":
		value, err = client.Acquire(words[1], Milliseconds(words[2]), unhex(words[3]))
	case words[0] == "release":
		value, err = client.Release()
	case check != nil:
		value, err = check(words[1:]...)
	default:
		err = fmt.Errorf("unknown request %v", words)
	}
	if err != nil {
		return "error " + err.Error()
	}
	switch value := value.(type) {
	case nil:
		return "done"
	case bool:
		return map[bool]string{true: "yes", false: "no"}[value]
	case time.Duration:
		return fmt.Sprint(max(0, value.Milliseconds()))
	default:
		return fmt.Sprint(value)
	}
}

func unhex(word string) string { return string(Must(hex.DecodeString(word))) }

// Node is a driver's connection to one node; a lock on all nodes is what its users write themselves.
type Node interface {
	Set(key, token string, ttl time.Duration) (bool, error)
	Get(key string) (string, error)
	TTL(key string) (time.Duration, error)
	Eval(script, key string, arguments ...string) (int64, error)
}

type byHand struct {
	nodes      []Node
	key, token string
}

// ServeByHand serves the story with a lock on every node; open connects, to database 3 where there is a password.
func ServeByHand(title string, open func(address, password string) (Node, error), checks Checks) {
	hand := &byHand{nodes: Each(func(address string) Node { return Must(open(address, "")) })}
	if checks == nil {
		checks = Checks{}
	}
	checks["forge"] = func(words ...string) (any, error) {
		hand.key, hand.token = words[0], unhex(words[1])
		return nil, nil
	}
	checks["extend"] = func(words ...string) (any, error) { return hand.run(Extend, words[0]) }
	checks["query"] = func(...string) (any, error) { return hand.left() }
	checks["login"] = func(words ...string) (any, error) {
		node, err := open(os.Getenv("INTEROP_AUTH_NODE"), append(words, "")[0])
		if err != nil {
			return nil, err
		}
		return node.Set("interop:login", "in", 0)
	}
	Serve(title, hand, checks)
}

func (hand *byHand) Acquire(key string, ttl time.Duration, token string) (any, error) {
	hand.key, hand.token = key, token
	return Votes(hand.nodes, func(node Node) (bool, error) { return node.Set(key, token, ttl) })
}

func (hand *byHand) Release() (any, error) { return hand.run(Release) }

func (hand *byHand) run(script string, arguments ...string) (any, error) {
	return Votes(hand.nodes, func(node Node) (bool, error) {
		done, err := node.Eval(script, hand.key, append([]string{hand.token}, arguments...)...)
		return done == 1, err
	})
}

func (hand *byHand) left() (any, error) {
	least := time.Duration(math.MaxInt64)
	for _, node := range hand.nodes {
		value, err := node.Get(hand.key)
		if err != nil {
			return nil, err
		}
		left := time.Duration(0)
		if value == hand.token {
			if left, err = node.TTL(hand.key); err != nil {
				return nil, err
			}
		}
		least = min(least, left)
	}
	return least, nil
}
