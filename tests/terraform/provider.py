#!/usr/bin/env python3
"""A stand-in for hashicorp/google that knows what its arguments are called (google.json) and does nothing.

`terraform validate` then refuses misspelt and missing arguments, and `terraform test` can mock the rest, without registry,
network or credentials.
"""
import json
import pathlib

from tf.gen import tfplugin_pb2
from tf.runner import run_provider
from tf.schema import Attribute, Block, NestedBlock, NestMode, Schema
from tf.types import Bool, List, Map, Number, String

KNOWN = json.loads(pathlib.Path(__file__).with_name("google.json").read_text())
TYPES = {"bool": Bool(), "list": List(String()), "map": Map(String()), "number": Number(), "string": String()}


class Listed(NestedBlock):
    """The framework knows sets and single blocks; the real provider's blocks are lists, so that `block[0]` works."""

    _mode_map = {NestMode.Set: tfplugin_pb2.Schema.NestedBlock.NestingMode.LIST}

    def encode(self, value):
        return value

    def decode(self, value):
        return value

    def semantically_equal(self, a_decoded, b_decoded):
        return a_decoded == b_decoded


def parts(known):
    """Attributes and nested blocks of one resource or block."""
    attributes, blocks = [], []
    for name, told in known.items():
        if isinstance(told, dict):
            inner = dict(told)
            often = inner.pop("[]")
            most = None if often.endswith("+") else 1
            inner_attributes, inner_blocks = parts(inner)
            block = Block(attributes=inner_attributes, block_types=inner_blocks)
            blocks.append(Listed(name, NestMode.Set, block, min_items=int(often[0]), max_items=most))
        else:
            kind, _, computed = told.rstrip("!").partition(" ")
            required = told.endswith("!")
            attributes.append(Attribute(
                name, TYPES[kind], required=required, optional=not required and not computed, computed=bool(computed)))
    return attributes, blocks


def declared(name, known, members):
    attributes, blocks = parts(known)
    attributes.append(Attribute("id", String(), computed=True))
    members = {
        "__init__": lambda self, provider: None,
        "get_name": classmethod(lambda cls: name.removeprefix("google")),
        "get_schema": classmethod(lambda cls: Schema(attributes=attributes, block_types=blocks)),
        "validate": lambda self, diags, type_name, config: None,
        **{member: refuse for member in members},
    }
    return type(name, (), members)


def refuse(*_):
    raise NotImplementedError("the stand-in only knows names; mock_provider answers")


class Google:
    def get_model_prefix(self):
        return "google"

    def full_name(self):
        return "registry.terraform.io/hashicorp/google"

    def get_provider_schema(self, diags):
        return Schema(attributes=[Attribute("project", String(), optional=True), Attribute("region", String(), optional=True)])

    def validate_config(self, diags, config):
        pass

    def configure_provider(self, diags, config):
        pass

    def get_resources(self):
        return [declared(name, known, ["create", "read", "update", "delete", "plan", "import_", "upgrade"])
                for name, known in KNOWN["resources"].items()]

    def get_data_sources(self):
        return [declared(name, known, ["read"]) for name, known in KNOWN["data_sources"].items()]

    def get_functions(self):
        return []

    def new_resource(self, klass):
        return klass(self)

    def new_data_source(self, klass):
        return klass(self)


if __name__ == "__main__":
    run_provider(Google())
