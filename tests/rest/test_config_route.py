"""GET /v1/config, on both mounts."""

import pytest

from frazil.rest.app import CATALOG_ROUTES


@pytest.mark.seed(46, 81, 82, 83, 89, 188, 250, 266, 267)
def test_the_config_tells_prefix_separator_and_the_lifetime_of_keys(client):
    told = client.get("/iceberg/v1/config", base="").json
    assert told["overrides"] == {"prefix": "lake", "namespace-separator": "%1F"}
    assert told["idempotency-key-lifetime"] == "PT1H"


@pytest.mark.seed(80)
def test_over_a_directory_clients_need_no_defaults(client):
    assert client.get("/iceberg/v1/config", base="").json["defaults"] == {}


@pytest.mark.seed(84, 85, 86, 156)
def test_the_endpoints_are_exactly_the_routes_with_a_literal_prefix(client):
    told = client.get("/iceberg/v1/config", base="").json["endpoints"]
    assert told == [f"{row.method} {row.path}" for row in CATALOG_ROUTES]
    assert set(told) >= {
        "GET /v1/config",
        "GET /v1/{prefix}/namespaces",
        "POST /v1/{prefix}/namespaces",
        "GET /v1/{prefix}/namespaces/{namespace}",
        "HEAD /v1/{prefix}/namespaces/{namespace}",
        "DELETE /v1/{prefix}/namespaces/{namespace}",
        "GET /v1/{prefix}/namespaces/{namespace}/tables",
        "POST /v1/{prefix}/namespaces/{namespace}/tables",
        "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
        "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
        "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
        "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}",
        "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials",
        "POST /v1/{prefix}/tables/rename",
    }


@pytest.mark.seed(87)
def test_every_advertised_endpoint_is_there(client):
    for endpoint in client.get("/iceberg/v1/config", base="").json["endpoints"]:
        method, path = endpoint.split(" ")
        path = path.replace("{prefix}", "lake").replace("{namespace}", "nowhere").replace("{table}", "nothing")
        body: dict | None = {} if method == "POST" else None
        reply = client.ask(method, "/iceberg" + path, body, base="")
        assert reply.status not in (405, 501), endpoint
        if reply.status == 404:
            assert method == "HEAD" or reply.error[1].startswith("NoSuch"), endpoint


@pytest.mark.seed(385, 386)
def test_the_mount_without_a_prefix_names_warehouse_and_implementation(client, live):
    told = client.get("/lakehouse/v1/config", base="").json
    assert told["overrides"] == {"namespace-separator": "%1F"}
    assert told["defaults"] == {
        "warehouse": live.app.site.root,
        "catalog-impl": "org.apache.iceberg.rest.RESTCatalog",
    }
    assert "GET /v1/{prefix}/namespaces" in told["endpoints"]


@pytest.mark.seed(385)
def test_both_mounts_show_one_catalog(client):
    path = client.a_table()
    assert client.get(path, base="/lakehouse/v1").json == client.get(path).json


@pytest.mark.parametrize("mount", ["/iceberg", "/lakehouse"])
@pytest.mark.parametrize("warehouse", ["", "lake"])
def test_the_catalogs_name_is_its_warehouse(client, mount, warehouse):
    assert client.get(f"{mount}/v1/config?warehouse={warehouse}", base="").status == 200


@pytest.mark.parametrize("mount", ["/iceberg", "/lakehouse"])
def test_another_warehouse_is_not_found(client, mount):
    reply = client.get(f"{mount}/v1/config?warehouse=s3%3A%2F%2Felse", base="")
    assert reply.error == (404, "NoSuchWarehouseException")
    assert "s3://else" in reply.json["error"]["message"]


def test_an_unknown_prefix_is_no_warehouse(client):
    assert client.get("/namespaces", base="/iceberg/v1/else").error == (404, "NoSuchWarehouseException")


@pytest.mark.seed(88)
def test_a_configured_separator_and_the_standard_one_both_work(start):
    with start(namespace_separator="%3A") as server:
        client = server.client()
        assert client.get("/iceberg/v1/config", base="").json["overrides"]["namespace-separator"] == "%3A"
        client.a_namespace("a")
        client.a_namespace("a", "b")
        for path in ("a%3Ab", "a%3ab", "a%1Fb", "a%1fb"):
            assert client.get(f"/namespaces/{path}").json["namespace"] == ["a", "b"]
        assert client.get("/namespaces?parent=a").json["namespaces"] == [["a", "b"]]
