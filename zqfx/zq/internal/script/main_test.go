package script_test

import (
	"os"
	"testing"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func TestMain(m *testing.M) { os.Exit(zqtest.Main(m)) }
