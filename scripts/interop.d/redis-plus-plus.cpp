// needs: pkg-config redis++ hiredis
// away: down=fails quarantine=fails (any error of a node is raised)
// lacks: token
// has: wait

// redis-plus-plus's RedLockMutex on all nodes: SET NX PX and scripts.

#include <sw/redis++/patterns/redlock.h>
#include <sw/redis++/redis++.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#ifndef MUTEX
#define MUTEX RedLockMutex
#endif

using namespace sw::redis;
using std::chrono::milliseconds;

using Nodes = std::vector<std::shared_ptr<Redis>>;
using Words = std::vector<std::string>;

Nodes nodes() {
    Nodes nodes;
    std::istringstream addresses(std::getenv("INTEROP_NODES"));
    for (std::string address; std::getline(addresses, address, ',');) {
        nodes.push_back(std::make_shared<Redis>("tcp://" + address));
    }
    return nodes;
}

// Drives locks of one kind by the lines that story.py describes.
template <typename Mutex>
class Adapter {
public:
    Adapter() : _nodes(nodes()) {}

    void serve(const std::string &title) {
        std::cout << "ready " << title << std::endl;
        for (std::string line; std::getline(std::cin, line);) {
            std::istringstream stream(line);
            Words words{std::istream_iterator<std::string>(stream), {}};
            std::string reply;
            try {
                reply = _requests.at(words[0])(words);
            } catch (const std::exception &error) {
                reply = std::string("error ") + error.what();
            }
            std::cout << reply << std::endl;
        }
    }

private:
    // The lock lives as long as what it locks.
    struct Held {
        Held(const Nodes &nodes, const std::string &key)
            : mutex(nodes.begin(), nodes.end(), key), lock(mutex, std::defer_lock) {}
        Mutex mutex;
        RedLock<Mutex> lock;
    };

    static std::string word(bool done) { return done ? "yes" : "no"; }

    bool acquire(const Words &words) {
        auto held = std::make_unique<Held>(_nodes, words[1]);
        bool is_held = held->lock.try_lock(milliseconds(std::stol(words[2])));
        if (is_held) _held = std::move(held);
        return is_held;
    }

    // Its own lock() would wait until it is stopped.
    bool wait(const Words &words) {
        auto end = std::chrono::steady_clock::now() + milliseconds(std::stol(words[2]));
        while (!acquire(words)) {
            if (std::chrono::steady_clock::now() > end) return false;
            std::this_thread::sleep_for(milliseconds(20));
        }
        return true;
    }

    // It does not say whether the lock was held.
    std::string release() {
        _held->lock.unlock();
        return "done";
    }

    Nodes _nodes;
    std::unique_ptr<Held> _held;
    std::map<std::string, std::function<std::string(const Words &)>> _requests = {
        {"acquire", [this](const Words &words) { return word(acquire(words)); }},
        {"wait", [this](const Words &words) { return word(wait(words)); }},
        {"extend", [this](const Words &words) { return word(_held->lock.extend_lock(milliseconds(std::stol(words[1])))); }},
        {"query", [this](const Words &) { return word(_held->lock.owns_lock()); }},
        {"release", [this](const Words &) { return release(); }},
    };
};

#define TEXT_OF(name) #name
#define TITLE(name) "redis-plus-plus " VERSION " with " TEXT_OF(name)

int main() { Adapter<MUTEX>().serve(TITLE(MUTEX)); }
