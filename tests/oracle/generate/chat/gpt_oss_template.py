# SPDX-License-Identifier: GPL-3.0-or-later
"""The template of family_templates.py in the manner of gpt-oss, with macros."""

GPT_OSS = """{#- Types, as a program would write them -#}
{%- macro render_type(spec, required, indent="") -%}
    {%- if spec.type == "array" -%}
        {%- if spec['items'] -%}
            {{- render_type(spec['items'], required) + "[]" -}}
        {%- else -%}
            {{- "any[]" -}}
        {%- endif -%}
        {%- if spec.nullable -%}{{- " | null" -}}{%- endif -%}
    {%- elif spec.type is defined and spec.type is iterable and spec.type is not string and spec.type is not mapping -%}
        {{- spec.type | join(" | ") -}}
    {%- elif spec.oneOf -%}
        {%- for variant in spec.oneOf -%}
            {{- render_type(variant, required, indent=indent ~ "  ") -}}
            {%- if not loop.last -%}{{- " | " -}}{%- endif -%}
        {%- endfor -%}
    {%- elif spec.type == "string" -%}
        {%- if spec.enum -%}
            {{- '"' + spec.enum|join('" | "') + '"' -}}
        {%- else -%}
            {{- "string" -}}
        {%- endif -%}
    {%- elif spec.type == "number" or spec.type == "integer" -%}
        {{- "number" -}}
    {%- elif spec.type == "object" and spec.properties -%}
        {{- "{\\n" -}}
        {%- for name, prop in spec.properties.items() -%}
            {{- indent + "  " + name -}}
            {%- if name not in (spec.required or []) -%}{{- "?" -}}{%- endif -%}
            {{- ": " -}}
            {{ render_type(prop, spec.required or [], indent + "  ") }}
            {%- if not loop.last -%}{{- ", " -}}{%- endif -%}
            {{- "\\n" -}}
        {%- endfor -%}
        {{- indent + "}" -}}
    {%- else -%}
        {{- "any" -}}
    {%- endif -%}
{%- endmacro -%}

{%- macro system_text() -%}
    {%- if model_identity is not defined %}
        {%- set model_identity = "You are a model." %}
    {%- endif %}
    {{- model_identity + "\\n" }}
    {{- "Current date: " + strftime_now("%Y-%m-%d") + "\\n\\n" }}
    {%- if reasoning_effort is not defined %}
        {%- set reasoning_effort = "medium" %}
    {%- endif %}
    {{- "Reasoning: " + reasoning_effort }}
{%- endmacro -%}

{{- "<|start|>system<|message|>" }}
{{- system_text() }}
{{- "<|end|>" }}
{%- if messages[0].role == "developer" or messages[0].role == "system" %}
    {%- set developer_message = messages[0].content %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set developer_message = "" %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if developer_message or tools %}
    {{- "<|start|>developer<|message|>" }}
    {%- if developer_message %}
        {{- "# Instructions\\n\\n" + developer_message }}
    {%- endif %}
    {%- if tools -%}
        {{- "\\n\\n# Tools\\n\\n" }}
        {%- for tool in tools %}
            {%- set tool = tool.function %}
            {{- "// " + tool.description + "\\ntype " + tool.name + " = " + render_type(tool.parameters, [], "") + "\\n" }}
        {%- endfor %}
    {%- endif -%}
    {{- "<|end|>" }}
{%- endif %}
{%- set last_tool_call = namespace(name=none) %}
{%- for message in loop_messages -%}
    {%- if message.role == 'assistant' -%}
        {%- if "content" in message %}
            {%- if "<|channel|>" in message.content %}
                {{- raise_exception("No channels in the content.") }}
            {%- endif %}
        {%- endif %}
        {%- if loop.last and not add_generation_prompt %}
            {{- "<|start|>assistant<|channel|>final<|message|>" + message.content + "<|return|>" }}
        {%- else %}
            {{- "<|start|>assistant<|channel|>final<|message|>" + message.content + "<|end|>" }}
            {%- set last_tool_call.name = none %}
        {%- endif %}
    {%- elif message.role == 'tool' -%}
        {%- if last_tool_call.name is none %}
            {{- raise_exception("A tool's answer without a call") }}
        {%- endif %}
    {%- elif message.role == 'user' -%}
        {{- "<|start|>user<|message|>" + message.content + "<|end|>" }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|start|>assistant
{%- endif -%}
"""
