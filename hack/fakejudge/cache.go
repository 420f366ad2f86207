package fakejudge

import (
	"crypto/sha256"
	"hash"
	"sync"
)

const maxCachedPrefixes = 100_000

// segment is a piece of a request in the order in which a provider's prompt cache
// sees it. breakpoint ends a prefix that is worth keeping.
type segment struct {
	text       string
	breakpoint bool
}

// prefixCache simulates a provider's prompt cache: prefixes are compared byte for
// byte, nonces included, because that is what the real ones do.
type prefixCache struct {
	mu    sync.Mutex
	limit int
	seen  map[digest]struct{}
}

func newPrefixCache(limit int) *prefixCache {
	return &prefixCache{limit: limit, seen: map[digest]struct{}{}}
}

func (c *prefixCache) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.seen)
}

// cacheUse is how a request's bytes divide: read from the cache, written to it, neither.
type cacheUse struct{ read, written, plain int }

// use looks up and stores a request's prefixes. Everything up to the longest known
// prefix is read, the rest up to the last breakpoint is written. A full cache is
// emptied, as if it had expired.
func (c *prefixCache) use(model string, segments []segment) cacheUse {
	h := sha256.New()
	h.Write([]byte(model))
	type point struct {
		key digest
		end int
	}
	var points []point
	total := 0
	for _, s := range segments {
		h.Write([]byte{0})
		h.Write([]byte(s.text))
		total += len(s.text)
		if s.breakpoint {
			points = append(points, point{sum(h), total})
		}
	}
	var use cacheUse
	last := 0
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range points {
		last = p.end
		if _, ok := c.seen[p.key]; ok {
			use.read = p.end
			continue
		}
		if len(c.seen) >= c.limit {
			clear(c.seen)
		}
		c.seen[p.key] = struct{}{}
	}
	use.written, use.plain = last-use.read, total-last
	return use
}

func sum(h hash.Hash) digest { return digest(h.Sum(nil)[:16]) }
