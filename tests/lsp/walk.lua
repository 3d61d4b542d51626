-- Opens a file in Neovim with an example from docs/lsp.md, completes a relation and goes to its definition.
-- Arguments are environment variables; the result is written to $WALK_RESULT as JSON.
-- Each step is a condition to wait for and what to do then, so that Neovim handles keys in between.
local result = {}
local buffer

local function keys(text)
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(text, true, false, true), "n", false)
end

local function line() return vim.fn.getline(3) end

local function finish(failure)
  result.failure = failure
  local file = io.open(vim.env.WALK_RESULT, "w")
  file:write(vim.fn.json_encode(result))
  file:close()
  vim.cmd("qall!")
end

local steps = {
  { "diagnostics", function() return #vim.diagnostic.get(buffer) > 0 end, function()
    local found = vim.diagnostic.get(buffer)[1]
    result.diagnostic = { found.lnum, found.col, found.message }
    vim.api.nvim_buf_set_lines(buffer, 2, 3, false, { "author: b" })
    vim.api.nvim_win_set_cursor(0, { 3, 8 })
    keys("A<C-x><C-o>")
  end },
  { "the completion", function() return vim.fn.pumvisible() == 1 or line() == "author: bob" end, function()
    keys("<C-y><Esc>")
  end },
  { "the chosen completion", function() return line() == "author: bob" end, function()
    result.completed = line()
  end },
  { "no diagnostics", function() return #vim.diagnostic.get(buffer) == 0 end, function()
    vim.cmd("silent write")
    vim.api.nvim_win_set_cursor(0, { 3, 9 })
    vim.lsp.buf.definition()
  end },
  { "the definition", function() return vim.api.nvim_buf_get_name(0):match("bob.yaml$") end, function()
    result.definition = vim.api.nvim_buf_get_name(0)
    finish()
  end },
}

vim.o.completeopt = "menu,menuone"
vim.o.swapfile = false
vim.cmd("luafile " .. vim.env.WALK_CONFIGURATION)
vim.cmd("silent edit " .. vim.env.WALK_SITE .. "/content/articles/new.md")
buffer = vim.api.nvim_get_current_buf()

local step, waited_ms, interval_ms = 1, 0, 50
local timer = vim.loop.new_timer()
timer:start(interval_ms, interval_ms, vim.schedule_wrap(function()
  if step > #steps then return end
  local what, condition, action = unpack(steps[step])
  waited_ms = waited_ms + interval_ms
  if condition() then
    step, waited_ms = step + 1, 0
    action()
  elseif waited_ms > 60000 then
    step = #steps + 1
    finish("waited in vain for " .. what .. ": " .. line())
  end
end))
