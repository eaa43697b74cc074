package natsconn

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// A bucket is the stream KV_<bucket> with one subject per key, $KV.<bucket>.<key>. The library's
// own calls are not used: its Get may be answered by a replica that lags, and its Update takes the
// TTL off a key.

// createAttempts bounds KVCreate's way over markers that expire or change meanwhile.
const createAttempts = 5

// domainAPI is a prefix of the API that is a domain's. Others are those of imports, which name what
// they take.
var domainAPI = regexp.MustCompile(`^\$JS\.[^.]+\.API$`)

func kvStream(bucket string) string { return "KV_" + bucket }

func kvSubject(bucket, key string) string { return "$KV." + bucket + "." + key }

// kvTarget is where a key is written. Subjects of buckets do not cross into another JetStream
// domain, and may meet a bucket of the same name on this side; those of the API cross, and a domain
// takes both after its prefix. A server of the domain itself is written to without it, for which
// the rights to the bucket are enough.
func (c *Conn) kvTarget(bucket, key string) string {
	bare := kvSubject(bucket, key)
	here := c.domain.Load()
	if !domainAPI.MatchString(c.api) || here != nil && c.api == "$JS."+*here+".API" {
		return bare
	}
	return c.api + "." + bare
}

func checkKey(bucket, key string) error {
	if err := checkName("bucket", bucket); err != nil {
		return err
	}
	bad := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("-/_=.", r))
	}
	if key == "" || key[0] == '.' || key[len(key)-1] == '.' || strings.Contains(key, "..") ||
		strings.ContainsFunc(key, bad) {
		return fmt.Errorf(
			"%w: key %q of bucket %s, want letters, digits and - / _ = . without empty parts",
			ErrInvalid, key, bucket)
	}
	return nil
}

// deleted says whether a key's last message is a deletion, by a caller or by the server on expiry.
func deleted(h Header) bool {
	switch h.Get(headerKVOperation) {
	case "DEL", "PURGE":
		return true
	}
	return h.Get(headerMarkerReason) != ""
}

// KVGet reads a key from the leader. A key that is absent, deleted or expired is [ErrNotFound].
func (c *Conn) KVGet(
	ctx context.Context, bucket, key string,
) (value []byte, rev uint64, err error) {
	s, err := c.kvLast(ctx, bucket, key)
	if err != nil {
		return nil, 0, err
	}
	if deleted(s.Header) {
		return nil, 0, fmt.Errorf("bucket %s, key %s: %w", bucket, key, ErrNotFound)
	}
	return s.Data, s.Seq, nil
}

// kvLast reads a key's last message, which may be a deletion.
func (c *Conn) kvLast(ctx context.Context, bucket, key string) (*Stored, error) {
	if err := checkKey(bucket, key); err != nil {
		return nil, err
	}
	s, err := c.LastBySubject(ctx, kvStream(bucket), kvSubject(bucket, key))
	if err != nil {
		return nil, fmt.Errorf("bucket %s, key %s: %w", bucket, key, err)
	}
	return s, nil
}

// KVCreate writes a key that is absent, deleted or expired. With ttl > 0 it expires after that
// time, rounded up to whole seconds; the bucket must allow it. If the key exists the error is a
// [*SequenceError] with its revision. On [ErrTimeout] the key may have been written: read it and
// compare.
func (c *Conn) KVCreate(
	ctx context.Context, bucket, key string, value []byte, ttl time.Duration,
) (rev uint64, err error) {
	var expect uint64
	for range createAttempts {
		rev, err = c.KVUpdate(ctx, bucket, key, value, expect, ttl)
		if !errors.Is(err, ErrWrongSequence) {
			return rev, err
		}
		s, readErr := c.kvLast(ctx, bucket, key)
		switch {
		case errors.Is(readErr, ErrNotFound): // the marker expired between the two
			expect = 0
		case readErr != nil:
			return 0, readErr
		case !deleted(s.Header):
			return 0, fmt.Errorf("bucket %s, key %s exists: %w",
				bucket, key, &SequenceError{Last: s.Seq})
		default:
			expect = s.Seq
		}
	}
	return 0, err
}

// KVUpdate writes a key if its last revision is rev. With ttl > 0 its time to live begins anew;
// with ttl 0 it no longer expires. Refusals: [ErrWrongSequence], [ErrInFlight].
func (c *Conn) KVUpdate(
	ctx context.Context, bucket, key string, value []byte, rev uint64, ttl time.Duration,
) (uint64, error) {
	if err := checkKey(bucket, key); err != nil {
		return 0, err
	}
	h := Header{}
	ExpectLastSubjectSeq(h, rev)
	expireAfter(h, ttl)
	return c.PublishSync(ctx, c.kvTarget(bucket, key), h, value)
}

// KVDelete deletes a key if its last revision is rev. It leaves a marker, which watchers see.
func (c *Conn) KVDelete(ctx context.Context, bucket, key string, rev uint64) error {
	_, err := c.KVExpunge(ctx, bucket, key, rev, 0)
	return err
}

// KVExpunge is KVDelete with a marker that is gone after ttl, rounded up to whole seconds, if ttl >
// 0; the bucket must allow it. It returns the marker's revision. A watcher that hears nothing for
// longer than that may miss the deletion.
func (c *Conn) KVExpunge(
	ctx context.Context, bucket, key string, rev uint64, ttl time.Duration,
) (uint64, error) {
	if err := checkKey(bucket, key); err != nil {
		return 0, err
	}
	h := Header{headerKVOperation: []string{"DEL"}}
	ExpectLastSubjectSeq(h, rev)
	expireAfter(h, ttl)
	return c.PublishSync(ctx, c.kvTarget(bucket, key), h, nil)
}

// KVLast reads a key from the leader as it is: the value, or nil and the revision of the marker if
// it is deleted. Without either the revision is 0. A write that expects the revision follows what
// was read.
func (c *Conn) KVLast(
	ctx context.Context, bucket, key string,
) (value []byte, rev uint64, err error) {
	s, err := c.kvLast(ctx, bucket, key)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	case deleted(s.Header):
		return nil, s.Seq, nil
	}
	return s.Data, s.Seq, nil
}

// KVWatch follows a bucket: first the present keys, then every change, with the reader's
// guarantees. fn may get a key that is deleted without having seen it alive. A key can expire
// without a message when its stream has no leader at that time, so whoever relies on expiry must
// also look at times. See [Reader.CaughtUp] for the end of the present keys.
func (c *Conn) KVWatch(
	ctx context.Context, bucket string, fn func(key string, value []byte, rev uint64, deleted bool),
) (*Reader, error) {
	if err := checkName("bucket", bucket); err != nil {
		return nil, err
	}
	prefix := kvSubject(bucket, "")
	return c.Read(ctx, kvStream(bucket),
		ReadOptions{FilterSubjects: []string{prefix + ">"}, LastPerSubject: true}, func(s Stored) {
			fn(strings.TrimPrefix(s.Subject, prefix), s.Data, s.Seq, deleted(s.Header))
		})
}

// KVMatching lists the keys of a bucket that match a pattern of tokens such as "a.*", deleted ones
// too, in no order. It reads no values and makes no consumer.
func (c *Conn) KVMatching(ctx context.Context, bucket, pattern string) ([]string, error) {
	if err := checkName("bucket", bucket); err != nil {
		return nil, err
	}
	if pattern == "" {
		return nil, fmt.Errorf(
			"%w: keys of bucket %s: the pattern is empty: want tokens, with * and > for any",
			ErrInvalid, bucket)
	}
	var keys []string
	for {
		found, total, err := c.subjectPage(ctx, kvStream(bucket), kvSubject(bucket, pattern),
			len(keys))
		if err != nil {
			return nil, fmt.Errorf("keys of bucket %s: %w", bucket, err)
		}
		for _, s := range found {
			keys = append(keys, strings.TrimPrefix(s, kvSubject(bucket, "")))
		}
		if len(found) == 0 || len(keys) >= total {
			return keys, nil
		}
	}
}

// KVKeys lists the keys of a bucket that exist now, in no order.
func (c *Conn) KVKeys(ctx context.Context, bucket string) ([]string, error) {
	if err := checkName("bucket", bucket); err != nil {
		return nil, err
	}
	prefix := kvSubject(bucket, "")
	alive := map[string]bool{}
	err := c.Scan(ctx, kvStream(bucket), ReadOptions{
		FilterSubjects: []string{prefix + ">"}, LastPerSubject: true, HeadersOnly: true,
	}, func(s Stored) error {
		alive[strings.TrimPrefix(s.Subject, prefix)] = !deleted(s.Header)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("keys of bucket %s: %w", bucket, err)
	}
	keys := make([]string, 0, len(alive))
	for k, ok := range alive {
		if ok {
			keys = append(keys, k)
		}
	}
	return keys, nil
}
