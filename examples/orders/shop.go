package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/droverhq/drover/activity"
)

// shop is the pretended business: what lies on the shelf, and who has it. It may be asked anything twice, by an attempt that
// was believed lost and by the next one, and answers the same: whatever it does is done for an order's id.
type shop struct {
	out io.Writer // where humans are told

	mu       sync.Mutex
	shelf    map[string]int    // pieces by item
	reserved map[string]string // item by order
	shipped  map[string]string
}

func newShop(shelf map[string]int, out io.Writer) *shop {
	return &shop{out: out, shelf: maps.Clone(shelf), reserved: map[string]string{}, shipped: map[string]string{}}
}

// register says what a worker of the list "shop" does.
func (s *shop) register(w *activity.Worker) {
	activity.Register(w, actReserve, s.reserve)
	activity.Register(w, actRelease, s.release)
	activity.Register(w, actShip, s.ship)
	activity.Register(w, actAlert, s.alert)
}

func (s *shop) reserve(ctx context.Context, o order) (struct{}, error) {
	id := activity.Info(ctx).WorkflowID
	s.mu.Lock()
	defer s.mu.Unlock()
	pieces, sold := s.shelf[o.Item]
	switch {
	case s.reserved[id] != "" || s.shipped[id] != "":
		return struct{}{}, nil
	case !sold:
		return struct{}{}, activity.Fail(reasonNoSuchGoods, o.Item)
	case pieces == 0:
		return struct{}{}, activity.Fail(reasonOutOfStock, o.Item)
	}
	s.shelf[o.Item]--
	s.reserved[id] = o.Item
	return struct{}{}, nil
}

func (s *shop) release(ctx context.Context, _ order) (struct{}, error) {
	id := activity.Info(ctx).WorkflowID
	s.mu.Lock()
	defer s.mu.Unlock()
	if item := s.reserved[id]; item != "" {
		delete(s.reserved, id)
		s.shelf[item]++
	}
	return struct{}{}, nil
}

func (s *shop) ship(ctx context.Context, o order) (struct{}, error) {
	id := activity.Info(ctx).WorkflowID
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.shipped[id] != "":
		return struct{}{}, nil
	case o.Address == "":
		return struct{}{}, activity.Fail(reasonNoAddress, nil)
	case s.reserved[id] == "":
		return struct{}{}, fmt.Errorf("nothing is reserved for %s", id)
	}
	s.shipped[id] = s.reserved[id]
	delete(s.reserved, id)
	return struct{}{}, nil
}

// alert tells a human. A real one would page somebody.
func (s *shop) alert(_ context.Context, a alarm) (struct{}, error) {
	_, err := fmt.Fprintf(s.out, "ALERT   %-10s %s\n", a.Order, a.Text)
	return struct{}{}, err
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
