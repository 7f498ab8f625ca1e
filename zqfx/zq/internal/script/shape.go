package script

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/keys"
)

// Shape is how many partitions a queue has; the epoch grows when that changes. The zero epoch has one partition.
type Shape struct {
	Epoch      int64
	Partitions int
}

// ShapeError says that a partition has another shape than the caller goes by, and nothing was changed. One with a
// lower epoch is not open yet.
type ShapeError struct{ Now Shape }

func (e *ShapeError) Error() string {
	return fmt.Sprintf("the partition has epoch %d with %d partitions", e.Now.Epoch, e.Now.Partitions)
}

// shapeError reads an error of the scripts that says so; any other stays as it is.
func shapeError(err error) error {
	if !redis.HasErrorPrefix(err, "ZQEPOCH") {
		return err
	}
	_, rest, _ := strings.Cut(err.Error(), "ZQEPOCH ")
	epoch, partitions, _ := strings.Cut(rest, " ")
	return &ShapeError{Shape{Epoch: number(epoch), Partitions: int(max(1, number(partitions)))}}
}

// Shape reads what a partition knows of the queue's shape.
func (s *Set) Shape(ctx context.Context, c redis.Cmdable, k keys.Keys) (Shape, error) {
	found, err := c.HMGet(ctx, k.Meta, "epoch", "partitions").Result()
	if err != nil {
		return Shape{}, err
	}
	return Shape{Epoch: number(found[0]), Partitions: int(max(1, number(found[1])))}, nil
}
