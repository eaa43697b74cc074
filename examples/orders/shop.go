package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/droverhq/drover/activity"
)

// shop is the pretended business: what lies on the shelf, and who has it. It may be asked anything twice, by an attempt that
// was believed lost and by the next one, and answers the same: whatever it does is done for an order's id.
type shop struct {
	mu       sync.Mutex
	shelf    map[string]int    // pieces by item
	reserved map[string]string // item by order
	shipped  map[string]string

	slow time.Duration // how long it takes to put goods back
}

func newShop(shelf map[string]int) *shop {
	return &shop{shelf: maps.Clone(shelf), reserved: map[string]string{}, shipped: map[string]string{}}
}

// implement is what a worker of the list "shop" does.
func (s *shop) implement(w activity.Registry) {
	activity.Implement(w, Reserve, s.reserve)
	activity.Implement(w, Release, s.release)
	activity.Implement(w, Ship, s.ship)
}

func (s *shop) reserve(ctx context.Context, o Order) (struct{}, error) {
	id := activity.Info(ctx).WorkflowID
	s.mu.Lock()
	defer s.mu.Unlock()
	pieces, sold := s.shelf[o.Item]
	switch {
	case s.reserved[id] != "" || s.shipped[id] != "":
		return struct{}{}, nil
	case !sold:
		return struct{}{}, NoSuchGoods.With(o.Item)
	case pieces == 0:
		return struct{}{}, OutOfStock.With(o.Item)
	}
	s.shelf[o.Item]--
	s.reserved[id] = o.Item
	return struct{}{}, nil
}

func (s *shop) release(ctx context.Context, _ Order) (struct{}, error) {
	time.Sleep(s.slow)
	id := activity.Info(ctx).WorkflowID
	s.mu.Lock()
	defer s.mu.Unlock()
	if item := s.reserved[id]; item != "" {
		delete(s.reserved, id)
		s.shelf[item]++
	}
	return struct{}{}, nil
}

func (s *shop) ship(ctx context.Context, o Order) (struct{}, error) {
	id := activity.Info(ctx).WorkflowID
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.shipped[id] != "":
		return struct{}{}, nil
	case o.Address == "":
		return struct{}{}, NoAddress
	case s.reserved[id] == "":
		return struct{}{}, fmt.Errorf("nothing is reserved for %s", id)
	}
	s.shipped[id] = s.reserved[id]
	delete(s.reserved, id)
	return struct{}{}, nil
}

// stock is what a stocktaking finds.
type stock struct {
	Shelf    map[string]int // pieces by item
	Reserved []string       // orders that have goods reserved
	Shipped  []string       // orders that are on their way
}

func (s *shop) stock() stock {
	s.mu.Lock()
	defer s.mu.Unlock()
	return stock{Shelf: maps.Clone(s.shelf), Reserved: slices.Sorted(maps.Keys(s.reserved)), Shipped: slices.Sorted(maps.Keys(s.shipped))}
}
