package ratelimit_test

import (
	"os"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// limit bounds every wait of these tests.
const limit = 30 * time.Second

func TestMain(m *testing.M) { os.Exit(zqtest.Main(m)) }
