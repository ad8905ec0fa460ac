"""The functional operators that torch composes of others and that give tensors: run in an environment, one name a line. torch.export may
leave each of them whole, so each needs a row in the front end's table: imported, or refused with a sentence."""

import torch


def functional(schema):
    writes = any(argument.alias_info and argument.alias_info.is_write for argument in schema.arguments)
    return not writes and any("Tensor" in str(result.type) for result in schema.returns) and "Dimname" not in str(schema)


def main():
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        operator, _, overload = name.removeprefix("aten::").partition(".")
        overload = overload or "default"
        if not name.startswith("aten::") or not torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd"):
            continue
        packet = getattr(torch.ops.aten, operator, None)  # some names are those of scripts alone
        if packet and overload in packet.overloads() and functional(getattr(packet, overload)._schema):
            print(f"{operator}.{overload}")


if __name__ == "__main__":
    main()
