// Reads with npm's prometheus-query what the test wrote: URL START_SECONDS
const assert = require("node:assert");
const { PrometheusDriver } = require("prometheus-query");

const [endpoint, startText] = process.argv.slice(2);
const start = Number(startText) * 1000;

async function check(preferPost) {
    const driver = new PrometheusDriver({ endpoint, baseURL: "/prometheus/api/v1", preferPost });
    const instant = await driver.instantQuery("sum(level)", start + 585_000);
    assert.equal(instant.resultType, "vector");
    assert.equal(instant.result[0].value.value, 2.5);
    const range = await driver.rangeQuery("level", start + 300_000, start + 420_000, 60);
    assert.deepEqual(range.result[0].values.map((point) => point.value), [2.5, 2.5, 2.5]);
    const series = await driver.series("requests_total", start, start + 600_000);
    assert.deepEqual(series.map((one) => one.labels.job), ["db", "web"]);
    const matches = ["requests_total", "level"];
    assert.equal((await driver.series(matches, start, start + 600_000)).length, 3);
    assert.deepEqual(await driver.labelNames(), ["__name__", "job", "service.name"]);
    assert.deepEqual(await driver.labelValues("job"), ["db", "web"]);
    assert.equal((await driver.metadata("level")).level[0].type, "gauge");
    assert.deepEqual(await driver.rules(), []);
    assert.deepEqual(await driver.alerts(), []);
    const isFault = (fault) => /parse error/.test(JSON.stringify(fault) + fault.message);
    await assert.rejects(driver.instantQuery("sum("), isFault);
}

check(false)
    .then(() => check(true))
    .catch((fault) => {
        console.error(fault);
        process.exit(1);
    });
